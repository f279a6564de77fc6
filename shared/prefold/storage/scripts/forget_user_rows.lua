-- forget_user_rows(…) -> as write_user, which see. It is for writes that take something away, so a full store takes it too.
return write_rows()
