// Starts a private MariaDB with its own data folder and password, on loopback
// only.

package rig

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/go-sql-driver/mysql"

	"plimsoll.dev/lab/internal/gamerecord"
)

// dataFormat is the text of a file in each complete data folder. A data folder
// with another text or without the file is outdated or incomplete, and is created
// again.
const dataFormat = "plimsoll lab data 1\n"

const (
	databaseName = "lab"
	databaseUser = "lab"
)

func (r *Rig) mariadbDir() string { return filepath.Join(r.Cache, "mariadb") }

// prepareData creates the data folder, unless it exists and is complete.
func (r *Rig) prepareData(ctx context.Context) error {
	data := filepath.Join(r.mariadbDir(), "data")
	format := filepath.Join(data, "lab-format")
	if text, err := os.ReadFile(format); err == nil && string(text) == dataFormat {
		return nil
	}
	if _, err := os.Stat(data); err == nil {
		r.say("the data folder of MariaDB is stale or half made: it is made anew")
	}
	if err := checkRoom(r.Cache, r.room()); err != nil {
		return err
	}
	partial := data + ".partial"
	if err := errors.Join(os.RemoveAll(data), os.RemoveAll(partial), os.MkdirAll(partial, 0o700)); err != nil {
		return fmt.Errorf("the data folder of MariaDB cannot be made: %w", err)
	}
	install, err := findProgram("mariadb-install-db")
	if err != nil {
		return err
	}
	r.say("making a data folder for MariaDB")
	args := []string{"--no-defaults", "--datadir=" + partial, "--auth-root-authentication-method=normal", "--skip-test-db"}
	if os.Geteuid() == 0 {
		args = append(args, "--user=root") // without this flag the server refuses root
	}
	command := exec.CommandContext(ctx, install, args...)
	command.Env = append(os.Environ(), cacheVariable+"="+r.Cache)
	if output, err := command.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("the data folder of MariaDB cannot be made: %s", lastLine(output))
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(partial, "lab-format"), []byte(dataFormat), 0o600),
		os.Rename(partial, data),
	); err != nil {
		return fmt.Errorf("the data folder of MariaDB cannot be made: %w", err)
	}
	return nil
}

// password returns the password of the lab's account, which is created only once.
func (r *Rig) password() (string, error) {
	path := filepath.Join(r.mariadbDir(), "password")
	if text, err := os.ReadFile(path); err == nil && len(text) == 32 {
		return string(text), nil
	}
	var random [16]byte
	rand.Read(random[:]) // never fails
	text := hex.EncodeToString(random[:])
	return text, os.WriteFile(path, []byte(text), 0o600)
}

const mariadbConfig = `[mariadbd]
datadir = %[1]s/data
init-file = %[1]s/init.sql
bind-address = 127.0.0.1
port = %[2]d
socket = server.sock
pid-file = %[1]s/server.pid
skip-name-resolve
skip-log-bin
local-infile = 1
max-connections = 500
innodb-buffer-pool-size = 256M
innodb-log-file-size = 128M
innodb-flush-log-at-trx-commit = 2
`

// mariadbInit is the SQL that runs at each start. It creates the account of the
// services and locks the root account.
const mariadbInit = `create database if not exists ` + databaseName + `;
create or replace user '` + databaseUser + `'@'127.0.0.1' identified by '%[1]s';
grant all on ` + databaseName + `.* to '` + databaseUser + `'@'127.0.0.1';
alter user 'root'@'localhost' identified by '%[1]s';
`

func startMariaDB(ctx context.Context, l *launch) error {
	path, err := findProgram("mariadbd")
	if err != nil {
		return err
	}
	dir := l.rig.mariadbDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := l.rig.prepareData(ctx); err != nil {
		return err
	}
	password, err := l.rig.password()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "init.sql"), fmt.Appendf(nil, mariadbInit, password), 0o600); err != nil {
		return err
	}
	return l.onFreePort(func(port int) error {
		config := filepath.Join(dir, "server.cnf")
		if err := os.WriteFile(config, fmt.Appendf(nil, mariadbConfig, dir, port), 0o600); err != nil {
			return err
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		db, err := openDB(dsn(address, password))
		if err != nil {
			return err
		}
		defer db.Close()
		args := []string{"--defaults-file=" + config}
		if os.Geteuid() == 0 {
			args = append(args, "--user=root")
		}
		err = l.start(ctx, spec{
			name: "mariadb", path: path, args: args, dir: dir, patience: 60 * time.Second,
			ready: func(ctx context.Context, _ string) (bool, error) { return db.PingContext(ctx) == nil, nil },
		})
		switch {
		case err == nil:
			l.into.Addresses["mariadb"] = address
		case errors.Is(err, errEnded) && !portWasTaken(err):
			err = fmt.Errorf("%w; `lab/down all --purge` lets its data be made anew", err)
		}
		return err
	})
}

func dsn(address, password string) string {
	config := mysql.NewConfig()
	config.User, config.Passwd = databaseUser, password
	config.Net, config.Addr, config.DBName = "tcp", address, databaseName
	return config.FormatDSN()
}

func openDB(dsn string) (*sql.DB, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	config.Logger = &mysql.NopLogger{} // a starting server refuses connections
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// DSN returns the data source name with which a service connects to MariaDB.
func (r *Rig) DSN() (string, error) {
	password, err := r.password()
	if err != nil {
		return "", err
	}
	return dsn(r.state.Backing["mariadb"].Addresses["mariadb"], password), nil
}

func (r *Rig) mysqlEnv() (string, error) {
	dsn, err := r.DSN()
	return "LAB_MYSQL_DSN=" + dsn, err
}

// seed creates the table game_record, unless it exists and is complete.
func (r *Rig) seed(ctx context.Context) error {
	dsn, err := r.DSN()
	if err != nil {
		return err
	}
	db, err := openDB(dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	done, err := gamerecord.Seeded(ctx, db)
	if err != nil || done {
		return err
	}
	if err := checkRoom(r.Cache, r.room()); err != nil {
		return err
	}
	r.say("seeding %d rows of game_record", gamerecord.Rows)
	began := time.Now()
	if err := gamerecord.Seed(ctx, db); err != nil {
		return err
	}
	r.say("seeded in %.1f s", time.Since(began).Seconds())
	return nil
}
