"""What several threads share, and how many there may be. It imports nothing of the package.

All are used by tracegraph and by lowering.

each_in_a_thread   functions at the same time
interrupts         interrupts that wait
locks              locks that are taken together, and work that waits for one
threads            how many threads native code may have
weak_set           a weak set for several threads
"""
