"""The claims of the sources: one file a source or a part of it, found because it is there."""
