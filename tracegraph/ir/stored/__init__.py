"""Programs as JSON and raw constants: portable, checked when they are read, without code.

    attributes   values of attributes, types and numbers, each with its tag
    writing      Program -> JSON; the same without names and lines, as a key
    reading      JSON -> Program: every reference, type and attribute is checked
    upgrades     versions of ops, and what turns equations of older versions into those of today

    Program  := {"name", "effects", "types": [Type…], "sources": [[file, line, function]…],
                 "paths"?: [name of an input…], "ops": {name: version},
                 "constants": [type number…], "body": Region}
    Region   := {"params": [type number…], "eqns": [Eqn…], "results": [Atom…]}
    Eqn      := {"op", "in": [Atom…], "out": [type number…],
                 "function"?, "attrs"?, "regions"?, "source"?, "hints"?}
    Atom     := number of a value, counted in its region from the parameters on
              | {"literal": hexadecimal bytes, "type": type number}

A function of the user's has a number, as a tag of an attribute as well: its record is elsewhere in
the file, which the writer and the reader of the program have.

May import what `ir/` may.
"""
