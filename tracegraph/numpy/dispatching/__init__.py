"""Dispatching: how calls of NumPy, operators and methods get to the functions here.

The functions themselves are beside this folder, one file a family.

protocols, array_protocols    __array_ufunc__ and __array_function__ of tracers and of Arrays
methods                       methods and operators
dispatch                      arguments as arrays; decorators of functions
ufunc_calls, ufunc_methods    keywords of ufuncs; reduce, accumulate and their relatives
ufunc_at, core_axes           ufunc.at; axes of ufuncs of whole vectors
output, statics               out=; arguments that must be static
attached                      functions that bring derivatives of their own
families, docstrings          functions with one rule; docstrings of what is generated
namespace_info                what the array API standard asks a namespace
"""
