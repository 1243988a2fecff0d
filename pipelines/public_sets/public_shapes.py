"""What NLVR's records mean: a sentence that is true or false of an image, drawn in six orders of its boxes.

In params.yaml: `shape: public_shapes:nlvr`, with `options: {images: raw/nlvr/images}`.
"""

from __future__ import annotations

from typing import Any

import corpusforge

SPLIT = "dev"
ORDERS = 6


@corpusforge.shape("nlvr", gives="question_answer")
def nlvr(record: dict[str, Any]) -> list[dict[str, Any]]:
    """One task per order of the boxes; what the record holds beside goes with each."""
    beside = {key: record[key] for key in ("identifier", "directory", "evals", "structured_rep")}
    return [
        {
            "question": f"Is this true of the image? Answer true or false.\n\n{record['sentence']}",
            "answer": record["label"],
            "image": f"{record['directory']}/{SPLIT}-{record['identifier']}-{order}.png",
            **beside,
        }
        for order in range(ORDERS)
    ]
