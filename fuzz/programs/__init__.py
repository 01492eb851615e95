"""Random v1model programs: the soft switch's main path, its general path and an interpreter agree.

As Gauntlet (Ruffy et al., OSDI 2020) and p4-smith do for compilers of P4.
"""
