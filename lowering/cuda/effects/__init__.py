"""Effects: what running kernels report to the host.

A Plan's prints, checks, monitors and callbacks come in; text, exceptions, progress bars and calls
go out.

    call_ring        the ring buffer that the programs of a stream call the host through
    callback_thread  the thread that makes those calls
    channels         kernel parameters through which launches report, and their memory
    launch_effects   the failures, counts, prints and callbacks of one executable
    mailbox          words in pinned memory for failures and counts
    print_ring       the ring buffer that all programs of a device print through
    progress         the thread that shows counts and prints of programs in flight
    ring             what both ring buffers are: words, bytes, and the sites that append
"""
