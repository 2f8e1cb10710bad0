"""Effects: what running kernels report to the host.

A Plan's prints, checks and monitors come in; text, exceptions and progress bars go out.

    channels    kernel parameters through which launches report, and their memory
    effects     the failures, counts and prints of one executable
    mailbox     words in pinned memory for failures and counts
    print_ring  the ring buffer that all programs of a device print through
    progress    the thread that shows counts and prints of programs in flight
"""
