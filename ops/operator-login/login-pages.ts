/** Returns the login page. @param message what was wrong with the last login */
export const loginPage = (message: string) =>
  page(`<p role="alert">${message}</p>
<form method="post" action="/login">
  <label>Name <input name="name" autocomplete="username" autocapitalize="none" required autofocus></label>
  <label>Password <input name="password" type="password" autocomplete="current-password" required></label>
  <label>Code <input name="code" inputmode="numeric" autocomplete="one-time-code" pattern="[0-9]{6}" required></label>
  <button>Log in</button>
</form>`);

/** The page that ends a session. */
export const logoutPage = page(`<form method="post" action="/logout"><button>Log out</button></form>`);

function page(content: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Payment queues</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 20rem; margin: 15vh auto; padding: 0 1rem }
  label, input, button { display: block; width: 100%; box-sizing: border-box; font: inherit }
  label { margin-top: 1rem } input, button { padding: .5rem } button { margin-top: 1.5rem }
</style>
<h1>Payment queues</h1>
${content}
</html>
`;
}
