import { expect, test } from "vitest";
import { findUser } from "../../../../ops/bull-board/board-login.ts";

const login = { user: "operator", password: "long enough: yes" };
const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;

test("the login accepts the correct name and password, including a colon in the password", () => {
  expect(findUser(basic("operator:long enough: yes"), login)).toBe("operator");
});

test.each([
  ["no header", undefined],
  ["another scheme", "Bearer b3BlcmF0b3I6bG9uZyBlbm91Z2g6IHllcw=="],
  ["a wrong password", basic("operator:wrong")],
  ["a wrong name", basic("root:long enough: yes")],
  ["an empty pair", basic(":")],
  ["no colon", basic("long enough: yes")],
  ["a longer password", basic("operator:long enough: yes!")],
  ["not base64", "Basic %%%"],
])("%s is refused", (_name, header) => {
  expect(findUser(header, login)).toBeUndefined();
});

test("a header without a colon never matches an empty user name", () => {
  expect(findUser(basic("secret"), { user: "", password: "secret" })).toBeUndefined();
});
