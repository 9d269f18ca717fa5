"""What a test of a loss is made of: a target that is verified once, and the checks that read its report."""
