"""Attacks: random arrays, mutated and crafted files, kills, forks, full disks, two writers.

``python -m benchmarks.attack`` runs all of them within ``--minutes`` and writes the counts to
``benchmarks/results/reliability.md``. Every case has a seed: ``--only KIND --seed S`` repeats it.
"""
