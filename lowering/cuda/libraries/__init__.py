"""Calls of libraries: how each class of call is planned, captured into a graph, and captured again.

Packages of NVIDIA are loaded inside functions only.

library_calls    by class of call, how it is planned and captured
cublas           matrix products and triangular systems
cufft, cusolver  Fourier transforms; factorizations
foreign_calls    what users capture
loading          libraries loaded in threads, before they are called
bindings         modules of nvmath, each without the others
capture          what a library put into the graph, checked
capture_lock     one capture at a time
recapture        a call captured again, for other addresses
pointer_arrays   addresses of matrices, which calls read from memory
"""
