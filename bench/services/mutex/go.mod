module services/mutex

go 1.21
