module profiles

go 1.24
