"""One conversation through Prefold, through a blocking summarizer and sent whole: what its user waits for, and gets."""
