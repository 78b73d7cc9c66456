// Tokens: a JWT signed with HS256 and valid for a limited time. Each request's
// token is checked without a database query.

package apiserver

import (
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/golang-jwt/jwt/v5"
)

const tokenIssuer = "plimsoll-lab-apiserver"

type claims struct {
	jwt.RegisteredClaims
	Admin bool `json:"admin,omitempty"`
}

type tokens struct {
	secret   []byte
	lifetime time.Duration
	now      func() time.Time
}

func newTokens(secret string, lifetime time.Duration) tokens {
	key := []byte(secret)
	if len(key) == 0 {
		key = make([]byte, 32)
		rand.Read(key) // never fails
	}
	return tokens{secret: key, lifetime: lifetime, now: time.Now}
}

func (t tokens) issue(username string, admin bool) (string, time.Time, error) {
	now := t.now()
	ends := now.Add(t.lifetime)
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    tokenIssuer,
			Subject:   username,
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(ends),
		},
		Admin: admin,
	}).SignedString(t.secret)
	return signed, ends, err
}

func (t tokens) check(text string) (claims, error) {
	var c claims
	_, err := jwt.ParseWithClaims(text, &c,
		func(*jwt.Token) (any, error) { return t.secret, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithIssuer(tokenIssuer),
		jwt.WithExpirationRequired(),
		jwt.WithTimeFunc(t.now),
	)
	return c, err
}

// required lets only requests with a valid token pass.
func (t tokens) required(c *gin.Context) {
	scheme, text, _ := strings.Cut(c.GetHeader("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || text == "" {
		c.Header("WWW-Authenticate", "Bearer")
		abort(c, http.StatusUnauthorized, "log in first: the Authorization header carries no bearer token")
		return
	}
	claims, err := t.check(text)
	if err != nil {
		c.Header("WWW-Authenticate", "Bearer")
		abort(c, http.StatusUnauthorized, "the token is not valid or has run out: log in again")
		return
	}
	c.Set(usernameKey, claims.Subject)
	c.Set(adminKey, claims.Admin)
	c.Next()
}
