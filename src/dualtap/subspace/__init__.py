"""From samples to directions above the noise, and from a space of vectors to ±1 or sparse ones."""
