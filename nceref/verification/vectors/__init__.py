"""Reference vectors: inputs with proven outputs, frozen, for implementations in any language."""
