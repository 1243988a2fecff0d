"""The demo's own sources: preference pairs made from verified answers, and faults planted to be found again."""
