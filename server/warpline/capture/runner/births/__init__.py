"""Where loaders, optimizers, modules and wrappers were made, and with what."""
