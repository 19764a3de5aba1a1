"""The same examples on every machine and every run: a red test is a fact, not luck."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "reproducible",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # machines differ in speed
)
settings.load_profile("reproducible")
