"""What stands around a value decides whether it is a secret: names, sentences, tables, code."""

from __future__ import annotations

import pytest

from rmem.privacy.scanner import scan

VALUE = "3kx19qpx748ldb75lsjicbs6ipit6ssm"
SECRETS = [
    f'godaddyKey: "{VALUE}"',
    f"[DEBUG] Using Key={VALUE}",
    f"https://api.example.com/v1/users?key={VALUE}",
    f"thinkific token - '{VALUE}'",
    f"token = ' {VALUE} '",
    f"apiKey |{VALUE}",
    f"<secret>{{mailer AQAAABAAA {VALUE}}}</secret>",
    f"Your API2CART key is {VALUE}, which you will need",
]
OTHERS = [
    '"Reset password": "パスワードのリセット"',
    '\t"Password": "Salasana",',
    '\t"Incorrect password": "用户名或密码错误",',
    "--file.private-key='rsa.4096.pem'",
    'Password password `json:"staticPasswords"`',
    "PASSWORD=$(sudo cat /run/secret)",
    "data.EditPassword = &entry",
    "oauth2clientDescSecret := oauth2clientFields[1].Descriptor()",
    "opts.Cookie.Secret = base64CookieSecret",
    "Secret: testBASE32TOTPSecret,",
    "authentication_backend: file: password: argon2",
    'case "${MVNW_PASSWORD:+has-password}"',
    "NULL:!MD5:!PSK:!aECDH:!EDH-DSS-DES-CBC3-SHA",
    'shared-password = "jupyterhub.authenticators.shared:SharedPasswordAuthenticator"',
    "TOKEN_ENDPOINT=/api/oidc/token\nOAUTH2_USERINFO_ENDPOINT=/api/oidc/userinfo",
    "'@inquirer/password': 4.0.23(@types/node@25.9.5)",
    "return file_api_v2_api_proto_rawDescGZIP(), []int{0}",
    'Bind("datastore.password", "OPENFGA_DATASTORE_PASSWORD")',
    '{"key": "Q-52ee0e33-980f-4a19-9821-39533b2d1c"}',
    'cache_key = "3kx19qpx748ldb75lsjicbs6ipit6ssm"',
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_value_that_only_a_machine_writes_is_found_by_its_name(text):
    found = [text[one.start : one.end] for one in scan(text) if one.kind == "secret"]
    assert any(VALUE in one for one in found), found


@pytest.mark.parametrize("text", OTHERS)
def test_translations_files_and_code_are_no_secrets(text):
    assert not [text[one.start : one.end] for one in scan(text) if one.kind == "secret"]
