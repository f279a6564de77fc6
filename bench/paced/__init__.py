"""Sessions that talk at a pace while a slow model writes their summaries, with every process that is between them.

``./run bench paced``
"""
