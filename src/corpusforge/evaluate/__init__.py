"""Evaluation: what a model can do, how sure that is, and whether it is worse than the accepted one."""
