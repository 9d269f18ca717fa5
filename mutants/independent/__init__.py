"""A second catalogue, by authors who had not seen the diagnosis, its search or the first catalogue."""
