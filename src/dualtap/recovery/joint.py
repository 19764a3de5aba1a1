near_one_pattern = recover = None
