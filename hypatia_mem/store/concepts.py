"""Words that stand for one another when people talk about their work, in several languages.

One line a concept. ``likeness`` counts the words of a line as one word; ``~`` begins a line of
words that say little by themselves, ``!`` one of a name that no other name stands for. Nobody's words but ours: a language that is missing here is
compared by its own words alone.
"""

# ruff: noqa: E501 - a concept is a line, in several scripts

from __future__ import annotations

__all__ = ["CONCEPTS", "EMPTY", "NEGATIONS", "NO_GO", "OPPOSITES"]

CONCEPTS = """
database db databases datenbank datenbanken base-de-donnees bdd base-de-datos banco-de-dados 数据库 资料库 データベース 데이터베이스 база-данных бд
production prod live produktiv produktion produktionsumgebung produccion producao 生产环境 生产 线上 本番環境 本番 продакшен прод продакшн
environment env environments umgebung environnement entorno ambiente 环境 環境 окружение среда
deploy deployment rollout release ship publish launch roll-out ausrollen ausliefern bereitstellen veroeffentlichen deployen deployer deploiement desplegar despliegue publicar 部署 发布 上线 デプロイ リリース 배포 деплой выкатывать релиз выпуск
test testing spec check testen pruefen tester essai prueba probar teste testar 测试 テスト 테스트 тест тестирование тестировать
integration integrationstest integracion integracao 集成 интеграционный
mock stub fake double simulate mocken simuler simular 模拟 モック мокать мок заглушка
pull-request pr merge-request mr
repository repo repos depot repositorio 仓库 代码库 リポジトリ репозиторий
configuration config configure settings setting einstellung einstellungen konfiguration reglage parametre configuracion ajuste 配置 设置 設定 конфигурация настройка
password passwords passwort passwoerter kennwort mot-de-passe mots-de-passe contrasena contrasenas clave senha 密码 口令 パスワード 비밀번호 пароль
secret secrets credential credentials geheimnis geheimnisse zugangsdaten secreto secretos 密钥 机密 секрет
plaintext plain-text plain-texts unencrypted cleartext klartext unverschluesselt en-clair texto-plano 明文 平文
customer client clients customers kunde kunden klient cliente clientes 客户 顧客 お客様 клиент заказчик
user users nutzer benutzer anwender utilisateur usuario 用户 ユーザー пользователь
directory folder folders ordner verzeichnis dossier repertoire carpeta 目录 文件夹 папка каталог
file files datei dateien fichier archivo fichero arquivo 文件 ファイル файл
delete remove erase drop purge cleanup clean-up get-rid-of loeschen entfernen supprimer effacer enlever borrar eliminar quitar apagar 删除 清除 移除 削除 삭제 удалить удалять стирать
create add make-new introduce anlegen erstellen hinzufuegen creer ajouter crear anadir agregar criar 创建 添加 新建 作成 追加 создать создавать добавить добавлять
change modify alter edit update amend adjust aendern anpassen bearbeiten aktualisieren modifier changer cambiar modificar actualizar editar 修改 更改 改动 变更 改 変更 изменить изменять менять править обновлять
store stored save keep persist retain hold speichern ablegen aufbewahren aufheben behalten bewahren stocker conserver enregistrer garder guardar almacenar conservar 存储 保存 存放 保留 存 保管 хранить сохранять хранение
send sent mail transmit deliver forward senden schicken versenden verschicken envoyer transmettre expedier enviar mandar 发送 寄送 送信 отправлять отправить посылать
receive get-sent obtain erhalten bekommen empfangen kriegen recevoir obtenir recibir receber 收到 接收 受け取る получать получить
read fetch load lesen laden lire charger leer cargar 读取 读 加载 読む читать загружать
write wrote compose phrase phrased written writing schreiben verfassen formulieren ecrire rediger escribir redactar 写 编写 書く писать
start launch-process begin boot starten beginnen anfangen demarrer commencer empezar iniciar arrancar 启动 开始 開始 начинать запускать
stop halt end terminate finish anhalten beenden stoppen arreter terminer finir parar terminar detener 停止 结束 終了 остановить
restart reboot neustart neustarten redemarrer reiniciar 重启 再起動 перезапуск
run execute launch-command ausfuehren laufen executer lancer ejecutar correr 运行 执行 実行 запускать выполнять
approve approval sign-off okay accept freigeben freigabe genehmigen genehmigung approuver approbation aprobar aprobacion 批准 审批 承認 одобрить утверждать
review reviewer reviewers inspect code-review begutachten relecture revisar revision 审查 评审 レビュー ревью
responsible responsibility owner own owns in-charge accountable maintainer zustaendig verantwortlich verantwortung responsable encargado 负责 担当 ответственный отвечает
error errors failure fault fehler erreur erreurs error-es errores fallo 错误 故障 エラー ошибка
fail fails failed failing broken scheitern fehlschlagen fehlgeschlagen echouer echec fallar fallido 失败 失敗 сбой
message messages nachricht nachrichten meldung meldungen mensaje mensajes 消息 信息 メッセージ сообщение
log logs logging logfile journal protokoll protokolle protokollieren journaux journaliser registro registros registrar 日志 ログ лог логи журнал
server servers host backend serveur servidor 服务器 サーバー 서버 сервер
service services dienst dienste servicio servicios 服务 サービス сервис служба
port ports anschluss puerto 端口 ポート порт
listen listening listens serve served serves lauschen ecouter escuchar 监听 слушает
address url uri link adresse direccion 地址 アドレス адрес
web http https
website site page webseite seite pagina 网站 页面 ページ страница сайт
api interface endpoint schnittstelle 接口 インターフェース
function method routine funktion methode fonction methode funcion metodo 函数 方法 関数 функция метод
class classes klasse clase 类 クラス класс
variable variables variablen 变量 変数 переменная
global globals globale globalen globales 全局 グローバル глобальный
module modules modul package paket paquet modulo 模块 モジュール модуль пакет
library libraries lib libs bibliothek bibliotheken bibliotheque biblioteca dependency dependencies third-party 库 依赖 ライブラリ библиотека зависимость
framework frameworks
branch branches zweig branche rama 分支 ブランチ ветка
main master trunk hauptbranch
merge merging merged zusammenfuehren mergen fusionner fusionar 合并 マージ мержить слияние
commit commits committing committen 提交 コミット коммит коммитить
push pushes pushing pushen pousser 推送 プッシュ пушить
squash squashed squashing zusammenfassen
indentation indent indented indents einrueckung einruecken indenter indentation sangria 缩进 インデント отступ
tab tabs tabulator tabulatoren tabulation 制表符 タブ
space spaces blank blanks leerzeichen espace espacio 空格 スペース пробел
comment comments kommentar kommentare commentaire comentario 注释 コメント комментарий
documentation docs documented document doku dokumentation documentation documentacion 文档 ドキュメント документация
backup backups sicherung sicherungen datensicherung sauvegarde copia-de-seguridad respaldo 备份 バックアップ бэкап резервная-копия
nightly night overnight at-night nachts naechtlich nacht nuit nocturne noche nocturno 每晚 夜间 夜 ночь ночью
daily day days every-day tag tage taglich taeglich jour jours quotidien dia dias diario 天 每天 日 毎日 день дня дней ежедневно
week weeks weekly woche wochen wochentlich woechentlich semaine hebdomadaire semana semanal 周 星期 每周 週 неделя недели еженедельно
month months monthly monat monate monatlich mois mensuel mes meses mensual 月 每月 毎月 месяц ежемесячно
year years yearly annual jahr jahre jaehrlich annee annuel ano anos anual 年 每年 год ежегодно
hour hours stunde stunden heure hora 小时 時間 час
minute minutes minuten minuto 分钟 分 минута
second seconds sekunde sekunden seconde segundo 秒 секунда
monday mondays montag montags lundi lunes 星期一 周一 月曜日 月曜 понедельник
tuesday tuesdays dienstag dienstags mardi martes 星期二 周二 火曜日 火曜 вторник
wednesday wednesdays mittwoch mittwochs mercredi miercoles 星期三 周三 水曜日 水曜 среда
thursday thursdays donnerstag donnerstags jeudi jueves 星期四 周四 木曜日 木曜 четверг
friday fridays freitag freitags vendredi viernes 星期五 周五 金曜日 金曜 пятница пятницу пятницам
saturday saturdays samstag samstags sonnabend samedi sabado 星期六 周六 土曜日 土曜 суббота
sunday sundays sonntag sonntags dimanche domingo 星期日 周日 日曜日 日曜 воскресенье
automatic automatically auto automated self-acting automatisch selbsttaetig automatique automatiquement automatico automaticamente 自动 自動 автоматически
manual manually by-hand manuell handisch manuel manuellement manualmente 手动 手動 вручную
direct directly straight direkt direkte direkter direktes directement directo directamente 直接 直接に напрямую прямо
~ only no-other nothing-but none-but solely exclusively just nur lediglich bloss ausschliesslich seulement uniquement exclusivement solo solamente unicamente 仅 只 だけ только лишь
~ all every each whole entire alle jeder jede jedes saemtliche tous toutes tout chaque todos todas todo cada 所有 每个 全部 すべて все всякий каждый
~ before prior beforehand vor bevor vorher avant antes 之前 前に до перед
~ after afterwards following nach nachdem danach apres despues 之后 後に после
payment payments pay paid paying zahlung zahlungen bezahlung bezahlen paiement paiements paga pago pagos 支付 付款 支払い оплата платеж
invoice invoices bill bills rechnung rechnungen facture factures factura facturas 发票 账单 請求書 счет
report reports bericht berichte rapport rapports informe informes relatorio 报告 レポート отчет
meeting meetings call besprechung sitzung termin reunion reuniones 会议 会議 встреча совещание
secure security secured sicher sicherheit securite seguridad 安全 安全な безопасность
encrypt encrypted encryption verschluesseln verschluesselt verschluesselung chiffrer chiffrement cifrar cifrado 加密 暗号化 шифровать
performance fast quick speed schnell geschwindigkeit rapide vitesse rapido velocidad 性能 速度 快 速い быстро
format formatted formatting formatieren formater formato 格式 フォーマット формат
language sprache langue idioma 语言 言語 язык
! javascript js
! typescript ts
! python py
! kubernetes k8s
! postgres postgresql pg
! redis
! mysql mariadb
! mongodb mongo
! sqlite
! clickhouse
! kafka
! rabbitmq
! elasticsearch opensearch
! amazon aws
! azure
! google gcp
! github
! gitlab
! bitbucket
! jenkins
! docker podman
! nginx
! apache
! linux
! windows
! macos
! slack
! jira
! stripe
! paypal
! django
! flask
! rails
! react
! angular
! vue
! rust
! golang
! ruby
! php
! english englisch anglais ingles 英文 英语 английский
! german deutsch allemand aleman 德文 德语
! french franzoesisch francais frances 法文 法语
! spanish spanisch espagnol espanol 西班牙语
! chinese chinesisch chinois chino 中文 汉语
! american
! british
user-interface ui gui benutzeroberflaeche oberflaeche interface-utilisateur interfaz 界面 用户界面 画面
open opened offen geoeffnet ouvert abierto abierta 打开 開く открыт
enable enabled activate activated turn-on turned-on turning-on switch-on switched-on switching-on aktivieren aktiviert einschalten activer active activar activado 启用 有効 включить включен
environment-variable env-var
documented documents
feature features funktionalitaet fonctionnalite funcionalidad 功能 機能 функция-продукта
flag flags toggle toggles switch schalter drapeau bandera 开关 フラグ флаг
team crew mannschaft equipe equipo 团队 チーム команда
computer machine rechner ordinateur maquina ordenador 机器 電脑 компьютер
allow allowed permit permitted fine okay fine-to ok-to erlauben erlaubt duerfen permettre permis permitir permitido 允许 許可 разрешено можно
require required requires must need-to mandatory obligatory erforderlich verpflichtend requis obligatoire obligatorio 必须 必要 必須 обязательно должен
name names named naming benennen nom nommer nombre nombrar 名称 命名 名前 имя
number numbers count nummer anzahl zahl nombre-de numero 数量 编号 番号 номер
image picture photo bild foto imagen 图片 画像 картинка
email e-mail mail courriel correo 邮件 メール почта
retry retries retried retrying attempt-again try-again re-run wiederholen erneut-versuchen reessayer relancer reintentar reintento 重试 再試行 повторять
cache caches cached caching zwischenspeicher antememoria 缓存 キャッシュ кэш
session sessions sitzungen sesion sesiones 会话 セッション сессия
upload uploads uploaded uploading hochladen televerser subir 上传 アップロード загрузить
download downloads downloading herunterladen telecharger descargar 下载 ダウンロード скачать
query queries abfrage abfragen requete requetes consulta consultas 查询 クエリ запрос
view views ansicht ansichten vue vues vista vistas 视图 ビュー представление
expire expires expiry expiration ablaufen ablauf verfallen expirer caduca caducar vencer 过期 期限切れ истекает
code codebase source sources quellcode quelltext codigo fuente 代码 コード код
rule rules guideline policy convention regel richtlinie regle norma regla 规则 規則 правило
bug bugs defect issue ticket fehlerbericht bogue anomalie incidencia 缺陷 バグ баг
unique uniform consistent unified einheitlich eindeutig uniforme coherent unifie unificado 统一 一致 единый
return returns returned zurueckgeben liefern renvoyer retourner devolver retornar 返回 返す возвращать
one ein eins uno 1
two zwei deux dos zwo 2 两 二
three drei trois tres 3 三
four vier quatre cuatro 4 四
five fuenf cinq cinco 5 五
six sechs seis 6 六
seven sieben sept siete 7 七
eight acht huit ocho 8 八
nine neun neuf nueve 9 九
ten zehn dix diez 10 十
twelve zwoelf douze doce 12 十二
fifteen fuenfzehn quinze quince 15 十五
twenty zwanzig vingt veinte 20 二十
thirty dreissig trente treinta 30 三十
sixty sechzig soixante sesenta 60 六十
ninety neunzig noventa 90 九十
hundred hundert cent cien 100 一百
~ use used uses using usage utilize employ benutzen verwenden nutzen einsetzen utiliser employer usar utilizar emplear 使用 用 使う использовать
~ want wants wish like insist ask asked ask-for demand wollen wuenschen moechte vouloir souhaiter demander querer desear pedir 想要 希望 要求 хотеть просить
~ do does done doing make makes made perform carry tun machen gemacht faire fait hacer hecho 做 进行 する сделать делать
~ live lives located found reside reach hosted liegen liegt befindet trouver situe encontrar ubicado 位于 находится
~ go goes come happen happens take-place occur gehen kommen passieren stattfinden aller venir avoir-lieu ir ocurrir 发生 происходит
~ work works working arbeiten travailler trabajar 工作 работать
~ have has had get gets got haben hat avoir tener tiene 有 ある иметь
~ say says said tell told sagen sagt dire decir dice 说 言う говорит
~ show shows shown display zeigen anzeigen montrer afficher mostrar 显示 表示 показывать
~ let lets lassen laisser dejar
~ data daten donnees datos 数据 データ данные
~ thing things stuff item sache ding chose cosa
~ way ways kind sort type art weise maniere manera tipo
~ new neu neue nouveau nuevo 新
~ system systems 系统 システム система
~ suite set group collection reihe
~ contain contains include includes enthalten contenir contener 包含 содержать
"""

EMPTY = """
the a an and or of to in on at by for with from into onto over under as is are was were be been being am it its this that
these those there here than then so such but if when while where which who whom whose what how why we our us you your they their
them he she his her i me my mine ours yours always ever please also too very much more most some any no-one own per via about
should shall must can could would will may might has have had having do does did done get gets got need needs needed ought let
up out off again both between during within upon how just now still yet one's it's we're you're sure due
der die das den dem des ein eine einen einem einer eines und oder aber von vom zu zum zur im in ins an am auf aus bei mit nach
fuer ueber unter durch um als wie ist sind war waren wird werden wurde wurden sein seine seinen seiner ihr ihre ihren es er sie wir
uns unser unsere man sich auch so dass wenn ob da hier dort immer bitte muss muessen soll sollen sollte kann koennen darf duerfen
hat haben hatte noch schon sehr lang lange mal bin bist
le la les l un une des du de d et ou mais a au aux en dans sur sous par pour avec chez ce cet cette ces c qui que qu quoi dont il
elle ils elles on nous vous notre nos votre vos son sa ses leur leurs est sont etait etre ete ai as avons avez ont se s y n ne
toujours faut doit doivent devez peut peuvent si comme plus lieu
el los las lo al del y o u pero con por para sobre entre desde hasta que se su sus nuestro nuestra este esta estos estas ese esa eso
es son fue ser estar esta estan ha han hay siempre debe deben hay-que si como mas muy ya cada
o os as um uma no na nos nas do da dos das e em com por para que se seu sua sempre deve devem
il lo gli i uno di del della dei delle e ed in con su per che si suo sua sempre deve
и в во на с со у к о об от до из за по для что чтобы как это этот эта эти его ее их мы наш вы ваш он она они быть есть был была
всегда должно должны должен надо нужно бы ли же а но или быть раз
het een en of van te in op aan met voor door is zijn wordt worden dat die dit er we ons onze altijd moet moeten
"""

# Words that turn a sentence round; those of one line say it once, however often they stand there.
NEGATIONS = """
not no never nor neither none nobody nothing nowhere dont doesnt didnt isnt arent wasnt cant cannot wont shouldnt mustnt neednt wouldnt nicht nichts niemand nirgends nie niemals kein keine keinen keinem keiner keines keinerlei weder pas rien personne jamais aucun aucune nada nadie nunca jamas ningun ninguna ninguno tampoco nao non mai nessun nessuna niet nooit geen nie nigdy не ничего никто никогда нельзя ни никакой никаких никакие нет
without ohne sans sin sem senza zonder bez без
avoid avoids avoiding forbid forbids forbidden prohibit prohibited prohibits ban banned bans disallow disallowed refrain abstain refuse reject vermeide vermeiden vermeidet verboten verbiete untersagt unzulaessig verzichte verzichten tabu eviter evitez evite interdit interdite interdits interdites proscrit proscrire evita evitar eviten evite prohibido prohibida prohibidos prohibidas proibido proibida evitare vietato vietata запрещено запрещен запрещена избегать избегайте taboo
skip skips skipping skipped forget forgets omit omits omitting omitted vergessen vergiss ueberspringen auslassen oublier oubliez omettre olvidar olvides omitir saltar забывать забудь пропускать
instead rather statt anstatt plutot vez lugar вместо
unless ausser sauf salvo кроме
"""

# A word that says the opposite of another: that one, turned round.
OPPOSITES = """
open: closed shut geschlossen ferme fermee cerrado cerrada 关闭 закрыт
enable: disable disabled deactivate deactivated turn-off turns-off turned-off turning-off switch-off switched-off switching-off deaktivieren deaktiviert abschalten ausschalten desactiver desactive desactivar desactivado 禁用 無効 выключить отключен
"""

NO_GO = """
off the table|off limits|out of bounds|out of the question|hands off|no go|nogo|bad idea|bad practice|stay away|keep away|steer clear
"""
