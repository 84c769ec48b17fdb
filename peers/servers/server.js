// An echo server on Node's tls: node server.js PORT FOLDER MODE
"use strict";
const fs = require("fs");
const path = require("path");
const tls = require("tls");

const [port, folder, mode] = process.argv.slice(2);
const file = (name) => fs.readFileSync(path.join(folder, name));
const options = {
  cert: file("chain.pem"),
  key: file("key.pem"),
  minVersion: "TLSv1.3",
  sessionTimeout: 3600,
};
if (mode === "optional" || mode === "required") {
  options.ca = file("client-ca.pem");
  options.requestCert = true;
  options.rejectUnauthorized = mode === "required";
}
const server = tls.createServer(options, (socket) => {
  socket.on("error", () => socket.destroy());
  socket.pipe(socket);
});
server.on("tlsClientError", (error) => console.log(error.code));
server.listen(Number(port), "127.0.0.1");
