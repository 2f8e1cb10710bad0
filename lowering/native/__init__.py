"""Native code: a Plan as machine code of the CPU, made by LLVM."""
