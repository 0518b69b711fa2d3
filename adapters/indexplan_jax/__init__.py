"""Read a plan in loaders of the JAX world: `indexplan_jax.grain` has what Grain reads."""
