"""The claims of the sources: one file a source or a part of it, discovered because it is there."""
