"""Values that are stored in another order of memory than they are made in: made in that order, if
what they are made of takes fewer bytes to turn.

A transposed argument comes with its columns one after the other, and so lies all that is made of
it; the results are to be in row-major order. Of three results, each would be copied against the
grain: the argument is, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from lowering.host import functions
from lowering.host.registers import Instruction, Register, Temporary, memory_order
from lowering.host.stores import Overlaps, read_buffer, stored_buffer
from lowering.host.transposed import stored_across


@dataclass(frozen=True, slots=True)
class _Chain:
    """What is stored in one `order` by `stores`: `members` are made of each other and of the
    `sources`, element by element, and nothing else reads them.
    """

    order: tuple[int, ...] | None
    members: set[Register] = field(default_factory=set)
    sources: set[Register] = field(default_factory=set)
    stores: set[Instruction] = field(default_factory=set)


def turn_sources(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """The instructions, with copies of sources instead of copies of what is made of them."""
    result = list(instructions)
    crossing = [each for each in instructions if stored_across(each) is not None]
    if len(crossing) < 2:
        return result
    makers: dict[Register, Instruction] = {
        each.output: each for each in instructions if isinstance(each.output, Temporary)
    }
    readers: dict[Register, list[Instruction]] = {}
    for each in instructions:
        for register in dict.fromkeys(each.inputs):
            readers.setdefault(register, []).append(each)
    while crossing:
        chain = _chain_of(crossing[0], makers, readers)
        done = {crossing[0]} if chain is None else chain.stores
        crossing = [store for store in crossing if store not in done]
        if chain is not None and _pays(chain) and not _changes(chain, result, overlaps):
            result = _turned(chain, result)
    return result


def _chain_of(
    store: Instruction,
    makers: Mapping[Register, Instruction],
    readers: Mapping[Register, Sequence[Instruction]],
) -> _Chain | None:
    """The chain that ends in a store; None where something else reads a value of it."""
    target = stored_across(store)
    assert target is not None
    chain, found = _Chain(memory_order(target)), [store.inputs[0]]
    while found:
        value = found.pop()
        if value in chain.members or value in chain.sources:
            continue
        maker = makers.get(value)
        is_member = maker is not None and _is_made_elementwise(maker) and not _ends(maker, chain)
        (chain.members if is_member else chain.sources).add(value)
        if is_member and maker is not None:
            found += [each for each in maker.inputs if each.shape == value.shape]
        for reader in readers.get(value, ()):
            output = reader.output
            if _ends(reader, chain):
                chain.stores.add(reader)
            elif (
                _is_made_elementwise(reader) and output is not None and output.shape == value.shape
            ):
                found.append(output)
            elif is_member:
                return None
    return chain


def _ends(store: Instruction, chain: _Chain) -> bool:
    target = stored_across(store)
    return target is not None and memory_order(target) == chain.order


def _is_made_elementwise(maker: Instruction) -> bool:
    made = isinstance(maker.output, Temporary) and not maker.keeps
    return made and (maker.elementwise or functions.is_pointwise(maker))


def _against(chain: _Chain) -> set[Register]:
    """The sources that lie in another order."""
    return {source for source in chain.sources if memory_order(source) != chain.order}


def _pays(chain: _Chain) -> bool:
    stored = _nbytes(store.inputs[0] for store in chain.stores)
    return bool(chain.sources) and _nbytes(_against(chain)) < stored


def _nbytes(registers: Iterable[Register]) -> int:
    return sum(prod(each.shape) * each.dtype.itemsize for each in registers)


def _changes(chain: _Chain, instructions: Sequence[Instruction], overlaps: Overlaps) -> bool:
    """Whether a source may be written before all of the chain that reads it has done so."""
    sources = [buffer for each in _against(chain) if (buffer := read_buffer(each)) is not None]
    if not sources:
        return False
    used = [i for i, each in enumerate(instructions) if _is_of(chain, each)]
    written = map(stored_buffer, instructions[used[0] : used[-1]])
    return any(b is not None and overlaps(b, source) for b in written for source in sources)


def _is_of(chain: _Chain, instruction: Instruction) -> bool:
    return instruction.output in chain.members or instruction in chain.stores


def _turned(chain: _Chain, instructions: Sequence[Instruction]) -> list[Instruction]:
    against = _against(chain)
    moved: dict[Register, Register] = {
        each: Temporary(each.dtype, each.shape, each.dims, chain.order)
        for each in (*chain.members, *against)
    }
    copies: dict[Register, Register] = {  # what was a copy to be read is the value itself
        store.output: moved[store.inputs[0]]
        for store in chain.stores
        if isinstance(store.output, Temporary)
    }
    result: list[Instruction] = []
    for each in instructions:
        if not _is_of(chain, each):
            result.append(each.renamed(copies))
            continue
        for source in against.intersection(each.inputs):
            copy = Instruction("write", functions.store, (source,), moved[source], elementwise=True)
            result.append(copy)
            against.remove(source)
        if each.output not in copies:
            result.append(each.renamed(moved | copies))
    return result
