// The one shape in which every service of the lab, the Node.js one too, says
// what went wrong: {"error":{"status":404,"message":"..."}}.

package service

import (
	"encoding/json"
	"net/http"
)

// ErrorBody is the JSON of an error answer.
type ErrorBody struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail is its content.
type ErrorDetail struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

// NewError makes an error answer's body.
func NewError(status int, message string) ErrorBody {
	return ErrorBody{Error: ErrorDetail{Status: status, Message: message}}
}

// WriteError answers with a JSON error.
func WriteError(w http.ResponseWriter, status int, message string) {
	body, err := json.Marshal(NewError(status, message))
	if err != nil { // a struct of an int and a string always encodes
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away has no one to tell
}
