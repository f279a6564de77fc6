-- cut_state(…) -> as put_state, which see. It is for states from which something was taken, so a full store takes it too.
return replace_pinned()
