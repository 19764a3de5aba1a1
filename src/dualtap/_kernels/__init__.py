"""Compiled inner loops (Numba). Arrays in, arrays out; callers validate.

Importing this package imports Numba, which takes most of a second: import it inside the
function that needs it, never at the top of a public module.
"""
