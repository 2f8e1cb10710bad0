"""What several threads share. It imports nothing of the package.

tracegraph and lowering use it.

locks      locks that are taken together, and work that waits for one
threads    how many threads native code may have
weak_set   a weak set for several threads
"""
