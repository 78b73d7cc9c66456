// Log-in and the users' endpoints. Everyone may sign up, logged-in users may read
// accounts, and only the account's owner or an admin may change an account.

package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/mail"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"golang.org/x/crypto/bcrypt"
)

type userAPI struct {
	store  userStore
	tokens tokens
	cost   int
	log    *slog.Logger
	debug  bool
	// decoy is a password hash that is checked for unknown names, so that the
	// response time does not reveal which names exist.
	decoy []byte
}

const jsonBodyMax = 64 << 10

var usernameForm = regexp.MustCompile(`^[a-z][a-z0-9_.-]{1,31}$`)

// readJSON decodes a body strictly. If it returns false, it has responded with an
// error.
func readJSON(c *gin.Context, into any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(c.Writer, c.Request.Body, jsonBodyMax))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil && decoder.Decode(&struct{}{}) != io.EOF {
		err = errors.New("more than one value")
	}
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		abort(c, http.StatusRequestEntityTooLarge, "the body is longer than "+strconv.Itoa(jsonBodyMax)+" bytes")
	case errors.Is(err, io.EOF):
		abort(c, http.StatusBadRequest, "the body is empty: JSON is wanted")
	case err != nil:
		abort(c, http.StatusBadRequest, "the body is not the JSON that is wanted: "+err.Error())
	}
	return err == nil
}

// fail responds to the client after an error of the store.
func (a userAPI) fail(c *gin.Context, err error) {
	switch {
	case errors.Is(err, errNoUser):
		abort(c, http.StatusNotFound, err.Error())
	case errors.Is(err, errUserTaken):
		abort(c, http.StatusConflict, err.Error())
	case errors.Is(err, context.Canceled):
		c.Abort() // the client has gone away
	default:
		logOf(c, a.log).Error("database", "path", c.Request.URL.Path, "cause", err.Error())
		message := "the database does not answer"
		if a.debug {
			message += ": " + err.Error()
		}
		abort(c, http.StatusServiceUnavailable, message)
	}
}

func (a userAPI) login(c *gin.Context) {
	var said struct{ Username, Password string }
	if !readJSON(c, &said) {
		return
	}
	user, hash, err := a.store.withHash(c.Request.Context(), said.Username)
	if err != nil && !errors.Is(err, errNoUser) {
		a.fail(c, err)
		return
	}
	if err != nil {
		hash = a.decoy
	}
	if bcrypt.CompareHashAndPassword(hash, []byte(said.Password)) != nil || err != nil {
		abort(c, http.StatusUnauthorized, "the username or the password is wrong")
		return
	}
	token, ends, err := a.tokens.issue(user.Username, user.Admin)
	if err != nil {
		a.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, gin.H{"token": token, "expires_at": ends.UTC().Format(time.RFC3339)})
}

// userInput contains the fields of a user that a client may set.
type userInput struct {
	Username *string `json:"username"`
	Nickname *string `json:"nickname"`
	Email    *string `json:"email"`
	Password *string `json:"password"`
}

// problem returns the reason why the input is invalid, or "" if it is valid.
func (in userInput) problem() string {
	switch {
	case in.Username != nil && !usernameForm.MatchString(*in.Username):
		return "username has 2 to 32 of a-z, 0-9, '_', '.' and '-', and begins with a letter"
	case in.Nickname != nil && utf8.RuneCountInString(*in.Nickname) > 64:
		return "nickname has at most 64 characters"
	case in.Email != nil && *in.Email != "" && !isEmail(*in.Email):
		return "email is not an address"
	case in.Password != nil && (len(*in.Password) < 8 || len(*in.Password) > 72):
		return "password has 8 to 72 bytes"
	}
	return ""
}

func isEmail(text string) bool {
	address, err := mail.ParseAddress(text)
	return err == nil && address.Address == text && len(text) <= 254
}

func (a userAPI) hash(c *gin.Context, password string) ([]byte, bool) {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), a.cost)
	if err != nil {
		a.fail(c, err)
	}
	return hash, err == nil
}

func (a userAPI) create(c *gin.Context) {
	var in userInput
	if !readJSON(c, &in) {
		return
	}
	if in.Username == nil || in.Password == nil {
		abort(c, http.StatusBadRequest, "username and password are wanted")
		return
	}
	if problem := in.problem(); problem != "" {
		abort(c, http.StatusBadRequest, problem)
		return
	}
	hash, ok := a.hash(c, *in.Password)
	if !ok {
		return
	}
	user := User{Username: *in.Username}
	if in.Nickname != nil {
		user.Nickname = *in.Nickname
	}
	if in.Email != nil {
		user.Email = *in.Email
	}
	made, err := a.store.create(c.Request.Context(), user, hash)
	if err != nil {
		a.fail(c, err)
		return
	}
	c.Header("Location", "/v1/users/"+made.Username)
	c.JSON(http.StatusCreated, made)
}

func (a userAPI) list(c *gin.Context) {
	offset, err1 := strconv.Atoi(c.DefaultQuery("offset", "0"))
	limit, err2 := strconv.Atoi(c.DefaultQuery("limit", "20"))
	if err1 != nil || err2 != nil || offset < 0 || limit < 1 || limit > 100 {
		abort(c, http.StatusBadRequest, "offset is 0 or more, limit is 1 to 100")
		return
	}
	users, total, err := a.store.list(c.Request.Context(), offset, limit)
	if err != nil {
		a.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, gin.H{"total": total, "users": users})
}

func (a userAPI) get(c *gin.Context) {
	user, err := a.store.get(c.Request.Context(), c.Param("name"))
	if err != nil {
		a.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, user)
}

// mayChange responds with 403 and returns false unless the caller is the
// account's owner or an admin.
func mayChange(c *gin.Context) bool {
	if c.GetString(usernameKey) == c.Param("name") || c.GetBool(adminKey) {
		return true
	}
	abort(c, http.StatusForbidden, "only the account itself or an admin may do this")
	return false
}

func (a userAPI) update(c *gin.Context) {
	var in userInput
	if !mayChange(c) || !readJSON(c, &in) {
		return
	}
	if in.Username != nil && *in.Username != c.Param("name") {
		abort(c, http.StatusBadRequest, "a username cannot be changed")
		return
	}
	if problem := in.problem(); problem != "" {
		abort(c, http.StatusBadRequest, problem)
		return
	}
	var hash []byte
	if in.Password != nil {
		var ok bool
		if hash, ok = a.hash(c, *in.Password); !ok {
			return
		}
	}
	user, err := a.store.update(c.Request.Context(), c.Param("name"), in.Nickname, in.Email, hash)
	if err != nil {
		a.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, user)
}

func (a userAPI) delete(c *gin.Context) {
	if !mayChange(c) {
		return
	}
	if err := a.store.delete(c.Request.Context(), c.Param("name")); err != nil {
		a.fail(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}
