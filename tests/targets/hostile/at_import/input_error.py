from nceref.errors import InputError

raise InputError("`loss` is wrong")
