"""Programs whose value is right and whose gradient is wrong, by the inputs that each record names."""
