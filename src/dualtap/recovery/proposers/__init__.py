"""Where patterns may be: each proposer returns candidates and knows nothing of the others."""
