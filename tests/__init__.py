"""The tests, in folders that mirror the packages.

`unit` has those of tracegraph, `plan` those of lowering without a GPU, `codegen` generated kernels
that run on a CPU, `gpu` what needs a device, `ops` and `property` the records of ops and random
programs, `benchmarks` and `repository` what is beside the packages. Shared are `cases` (data and
what it is compared with), `programs`, `corpus`, `comparisons` (tests that run on several devices),
`helpers`, `fakes`, `emulation` (CUDA on a CPU) and `pages` (documentation that code writes).
"""
