#!/usr/bin/env node
// npm links a program only if its file exists; `npm run build:packages` writes the bundle after that.
import "./dist/pay.js";
