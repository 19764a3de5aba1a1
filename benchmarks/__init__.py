"""Speed and claims, measured: ``python -m benchmarks`` (or ``make bench``)."""
