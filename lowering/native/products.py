"""Matrix products: calls of BLAS by address."""

from __future__ import annotations

import numpy as np

from lowering.native.blas import routine
from lowering.native.table import Table
from lowering.native.types import element_type, number
from lowering.native.writer import Writer
from lowering.plan.calls.matrix_product import MatrixOperand, MatrixProduct
from lowering.plan.nests.buffer import Buffer

LETTERS = {
    np.dtype(np.float32): "s",
    np.dtype(np.float64): "d",
    np.dtype(np.complex64): "c",
    np.dtype(np.complex128): "z",
}
"""What BLAS calls dtypes."""


def has_routines(call: MatrixProduct) -> bool:
    """Whether BLAS multiplies matrices of these types and strides."""
    dtype = call.target.buffer.type.dtype
    letter = LETTERS.get(dtype) if call.left.buffer.type.dtype == dtype else None
    if letter is None or routine(f"{letter}gemm") is None or routine(f"{letter}gemv") is None:
        return False
    return all(_leading(*each) is not None for each in _matrices(call))


def _matrices(call: MatrixProduct) -> list[tuple[MatrixOperand, int, int]]:
    return [
        (call.left, call.m, call.k),
        (call.right, call.k, call.n),
        (call.target, call.m, call.n),
    ]


def _leading(matrix: MatrixOperand, rows: int, columns: int) -> tuple[bool, int] | None:
    """Whether columns of a matrix are rows of BLAS's, whose leading dimension is the other."""
    row, column = matrix.row_stride, matrix.column_stride
    if column == 1 and (row >= max(columns, 1) or rows == 1):
        return True, max(row, columns, 1)
    if row == 1 and (column >= max(rows, 1) or columns == 1):
        return False, max(column, rows, 1)
    return None


class ProductWriter:
    """Writes calls of BLAS."""

    def __init__(self, writer: Writer, table: Table, addresses: dict[Buffer, str]) -> None:
        self._writer, self._table, self._addresses = writer, table, addresses
        self._numbers: dict[tuple[str, str], str] = {}

    def write(self, call: MatrixProduct) -> None:
        """Write a batch of products, one after the other."""

        def one(index: str) -> None:
            self._one(call, index)

        if call.batch == 1:
            one("0")
        else:
            self._writer.loop("0", str(call.batch), one)

    def _one(self, call: MatrixProduct, index: str) -> None:
        left, right, target = (self._address(each, index) for each, _, _ in _matrices(call))
        if call.n == 1 and self._vector(call, call.left, left, call.m, call.right, right, target):
            return
        if call.m == 1 and self._row(call, left, right, target):
            return
        self._gemm(call, left, right, target)

    def _vector(
        self,
        call: MatrixProduct,
        matrix: MatrixOperand,
        address: str,
        rows: int,
        vector: MatrixOperand,
        vector_address: str,
        target: str,
    ) -> bool:
        """A matrix and a column: gemv, which is faster than gemm of one column."""
        shape = _leading(matrix, rows, call.k)
        step = vector.row_stride if call.k != 1 else 1
        out = call.target.row_stride if call.m != 1 else 1
        if shape is None or step < 1 or out < 1:
            return False
        self._gemv(call, shape, (rows, call.k), address, vector_address, step, target, out)
        return True

    def _row(self, call: MatrixProduct, left: str, right: str, target: str) -> bool:
        """A row and a matrix: the transposed matrix and a column."""
        shape = _leading(call.right, call.k, call.n)
        step = call.left.column_stride if call.k != 1 else 1
        out = call.target.column_stride if call.n != 1 else 1
        if shape is None or step < 1 or out < 1:
            return False
        flipped = (not shape[0], shape[1])
        self._gemv(call, flipped, (call.n, call.k), right, left, step, target, out)
        return True

    def _gemv(
        self,
        call: MatrixProduct,
        shape: tuple[bool, int],
        extents: tuple[int, int],
        matrix: str,
        vector: str,
        step: int,
        target: str,
        out: int,
    ) -> None:
        name = f"{LETTERS[call.target.buffer.type.dtype]}gemv"
        transposed, leading = shape
        rows, columns = extents[::-1] if transposed else extents
        self._call(
            name,
            self._letter("T" if transposed else "N"),
            self._integer(name, rows),
            self._integer(name, columns),
            self._scalar(call, 1),
            matrix,
            self._integer(name, leading),
            vector,
            self._integer(name, step),
            self._scalar(call, 0),
            target,
            self._integer(name, out),
        )

    def _gemm(self, call: MatrixProduct, left: str, right: str, target: str) -> None:
        """BLAS's matrices have columns in memory: a target with rows is its transpose."""
        name = f"{LETTERS[call.target.buffer.type.dtype]}gemm"
        shapes = [shape for each in _matrices(call) if (shape := _leading(*each))]
        (left_rows, left_leading), (right_rows, right_leading), (flipped, leading) = shapes
        m, n = call.m, call.n
        first, second = (left, left_rows, left_leading), (right, right_rows, right_leading)
        if flipped:  # transposed: target' = right' @ left'
            m, n = n, m
            first, second = (
                (right, not right_rows, right_leading),
                (left, not left_rows, left_leading),
            )
        self._call(
            name,
            self._letter("T" if first[1] else "N"),
            self._letter("T" if second[1] else "N"),
            self._integer(name, m),
            self._integer(name, n),
            self._integer(name, call.k),
            self._scalar(call, 1),
            first[0],
            self._integer(name, first[2]),
            second[0],
            self._integer(name, second[2]),
            self._scalar(call, 0),
            target,
            self._integer(name, leading),
        )

    def _call(self, name: str, *arguments: str) -> None:
        function = self._table.load(self._writer, f"blas {name}")
        passed = ", ".join(f"ptr {each}" for each in arguments)
        self._writer.line(f"call void {function}({passed})")

    def _address(self, matrix: MatrixOperand, index: str) -> str:
        write, type_ = self._writer.assign, element_type(matrix.buffer.type.dtype)
        first = write(f"mul nsw i64 {index}, {matrix.batch_stride}")
        place = write(f"add nsw i64 {first}, {matrix.offset}")
        return self._writer.element(type_, self._addresses[matrix.buffer], place)

    def _letter(self, letter: str) -> str:
        return self._number("i8", str(ord(letter)))

    def _integer(self, name: str, value: int) -> str:
        found = routine(name)
        assert found is not None
        return self._number(f"i{8 * found.integer_bytes}", str(value))

    def _scalar(self, call: MatrixProduct, value: int) -> str:
        dtype = call.target.buffer.type.dtype
        parts = number(value, dtype)
        type_ = element_type(dtype)
        if len(parts) == 1:
            return self._number(type_, parts[0])
        part = type_.strip("{} ").split(",")[0]
        return self._number(type_, "{ " + ", ".join(f"{part} {x}" for x in parts) + " }")

    def _number(self, type_: str, text: str) -> str:
        """The address of a constant: Fortran takes all arguments by address."""
        key = (type_, text)
        if key not in self._numbers:
            self._numbers[key] = self._writer.constant(type_, text)
        return self._numbers[key]
