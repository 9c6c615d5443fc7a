import { expect, test } from "vitest";
import { findUser } from "../../../../ops/bull-board/login.ts";

const login = { user: "operator", password: "long enough: yes" };
const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;

test("the right name and password are let in, a colon in the password included", () => {
  expect(findUser(basic("operator:long enough: yes"), login)).toBe("operator");
});

test.each([
  ["no header", undefined],
  ["another scheme", "Bearer b3BlcmF0b3I6bG9uZyBlbm91Z2g6IHllcw=="],
  ["a wrong password", basic("operator:wrong")],
  ["a wrong name", basic("root:long enough: yes")],
  ["an empty pair", basic(":")],
  ["no colon", basic("long enough: yes")],
  ["something longer", basic("operator:long enough: yes!")],
  ["not base64", "Basic %%%"],
])("%s is refused", (_name, header) => {
  expect(findUser(header, login)).toBeUndefined();
});

test("an empty user name never matches by having no colon", () => {
  expect(findUser(basic("secret"), { user: "", password: "secret" })).toBeUndefined();
});
