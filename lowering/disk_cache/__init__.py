"""Plans and compiled code on disk, for a GPU and for a CPU.

    location         the folder, as `tracegraph.cache` has it
    private_folder   whether the folder can be trusted
    store            files by keys, checked when they are read, bounded in size
    versions         what of this installation a Plan depends on
    keys             Program, target and choices -> a digest
    pickles          Plans as bytes, with the lines and the name of the program in hand
    plans            a Plan from disk, or made and kept

It knows no compiler: a key says all that the code was made from. Plans are pickled: they hold
classes of ours alone, which the reader checks, and nobody else can write to the folder. Files for
others are those of `tracegraph.save`.
"""
