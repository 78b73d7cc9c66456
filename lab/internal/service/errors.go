// The common form of errors of all services of the lab, including the Node.js
// service: {"error":{"status":404,"message":"..."}}.

package service

import (
	"encoding/json"
	"net/http"
)

// ErrorBody is the JSON body of an error response.
type ErrorBody struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail contains the status and the message of an error response.
type ErrorDetail struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

// NewError creates the body of an error response.
func NewError(status int, message string) ErrorBody {
	return ErrorBody{Error: ErrorDetail{Status: status, Message: message}}
}

// WriteError sends a response with a JSON error.
func WriteError(w http.ResponseWriter, status int, message string) {
	body, err := json.Marshal(NewError(status, message))
	if err != nil { // this struct can always be encoded
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client has gone away
}
