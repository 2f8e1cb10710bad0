"""Machine code of LLVM modules: made quickly at first, then well, and kept on disk.

    compiler     LLVM IR to an object file, in two levels, and loading it
    llvm_turns   one thread at a time in LLVM, those that a caller waits for first
    code_files   object files on disk
    first_level  which code the first call of a plan runs
    tiers        the code of a module, quick and then full
    background   the thread that makes full code

The first call runs quick code, which is there after about 12 ms. The second call asks a thread for
full code, which takes 30 to 200 ms; the next call after it is ready runs it. Plans that run long
wait for full code, and code that is on disk is loaded in 2 ms.
"""
