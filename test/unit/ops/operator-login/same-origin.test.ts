import { expect, test } from "vitest";
import { isFromElsewhere } from "../../../../ops/operator-login/same-origin.ts";

test.each([
  [{ "sec-fetch-site": "same-origin" }, false],
  [{ "sec-fetch-site": "same-site" }, true],
  [{ "sec-fetch-site": "cross-site" }, true],
  [{ "sec-fetch-site": "none" }, true],
  [{ origin: "http://board:8081", host: "board:8081" }, false],
  [{ origin: "http://evil.example", host: "board:8081" }, true],
  [{ origin: "null", host: "board:8081" }, true],
  [{ host: "board:8081" }, false],
])("headers %j come from elsewhere: %s", (headers, elsewhere) => {
  expect(isFromElsewhere(headers)).toBe(elsewhere);
});
