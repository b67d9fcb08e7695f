"""Source text as all stages read it: standard library only, so that the language server starts light."""
