"""What a set is worth: statements, mixed items and the width of sets, next to their rivals.

All studies are linear or on small networks and run on a CPU.
"""
