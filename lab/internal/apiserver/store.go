// The store of users in the SQL database.

package apiserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

var (
	errNoUser    = errors.New("there is no such user")
	errUserTaken = errors.New("this username is taken")
)

// User is a row of the users table, without the hash of the password.
type User struct {
	ID        int64     `json:"id"`
	Username  string    `json:"username"`
	Nickname  string    `json:"nickname"`
	Email     string    `json:"email"`
	Admin     bool      `json:"admin"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

type userStore struct{ db *sql.DB }

const usersTable = `create table if not exists users (
	id bigint unsigned not null auto_increment primary key,
	username varchar(32) character set ascii not null unique,
	nickname varchar(64) not null,
	email varchar(254) not null,
	password_hash binary(60) not null,
	admin boolean not null default false,
	created_at datetime(3) not null default current_timestamp(3),
	updated_at datetime(3) not null default current_timestamp(3) on update current_timestamp(3)
) engine=InnoDB default charset=utf8mb4`

const userColumns = "id, username, nickname, email, admin, created_at, updated_at"

func openUsers(ctx context.Context, dsn string, maxOpen int) (userStore, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return userStore{}, fmt.Errorf("mysql.dsn is not user:password@tcp(host:port)/database: %w", err)
	}
	config.ParseTime = true
	config.Loc = time.UTC
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return userStore{}, fmt.Errorf("mysql.dsn: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(maxOpen)
	db.SetMaxIdleConns(maxOpen)
	if _, err := db.ExecContext(ctx, usersTable); err != nil {
		db.Close()
		return userStore{}, fmt.Errorf("the database at %s cannot be used: %w", config.Addr, err)
	}
	return userStore{db}, nil
}

func scanUser(row interface{ Scan(...any) error }, more ...any) (User, error) {
	var u User
	err := row.Scan(append([]any{&u.ID, &u.Username, &u.Nickname, &u.Email, &u.Admin, &u.CreatedAt, &u.UpdatedAt}, more...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return u, errNoUser
	}
	return u, err
}

func (s userStore) create(ctx context.Context, u User, hash []byte) (User, error) {
	_, err := s.db.ExecContext(ctx,
		"insert into users (username, nickname, email, password_hash, admin) values (?, ?, ?, ?, ?)",
		u.Username, u.Nickname, u.Email, hash, u.Admin)
	var refused *mysql.MySQLError
	if errors.As(err, &refused) && refused.Number == 1062 { // duplicate key
		return User{}, errUserTaken
	}
	if err != nil {
		return User{}, err
	}
	return s.get(ctx, u.Username)
}

// putAdmin creates or updates the admin account.
func (s userStore) putAdmin(ctx context.Context, hash []byte) error {
	_, err := s.db.ExecContext(ctx, `insert into users (username, nickname, email, password_hash, admin)
		values ('admin', 'admin', '', ?, true)
		on duplicate key update password_hash = values(password_hash), admin = true`, hash)
	return err
}

func (s userStore) get(ctx context.Context, username string) (User, error) {
	return scanUser(s.db.QueryRowContext(ctx, "select "+userColumns+" from users where username = ?", username))
}

func (s userStore) withHash(ctx context.Context, username string) (User, []byte, error) {
	var hash []byte
	u, err := scanUser(s.db.QueryRowContext(ctx,
		"select "+userColumns+", password_hash from users where username = ?", username), &hash)
	return u, hash, err
}

func (s userStore) list(ctx context.Context, offset, limit int) (users []User, total int, err error) {
	if err := s.db.QueryRowContext(ctx, "select count(*) from users").Scan(&total); err != nil {
		return nil, 0, err
	}
	rows, err := s.db.QueryContext(ctx, "select "+userColumns+" from users order by id limit ? offset ?", limit, offset)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	users = []User{}
	for rows.Next() {
		u, err := scanUser(rows)
		if err != nil {
			return nil, 0, err
		}
		users = append(users, u)
	}
	return users, total, rows.Err()
}

// update changes the given columns of a user; nil leaves a column unchanged.
func (s userStore) update(ctx context.Context, username string, nickname, email *string, hash []byte) (User, error) {
	_, err := s.db.ExecContext(ctx, `update users set nickname = coalesce(?, nickname),
		email = coalesce(?, email), password_hash = coalesce(?, password_hash) where username = ?`,
		nickname, email, hash, username)
	if err != nil {
		return User{}, err
	}
	return s.get(ctx, username)
}

func (s userStore) delete(ctx context.Context, username string) error {
	result, err := s.db.ExecContext(ctx, "delete from users where username = ?", username)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, errNoUser)
	}
	return nil
}
